"""Small logs of every format that is text, for tests that break them."""

from __future__ import annotations

import json

from support.logs import SWF

SACCT = """\
JobID|User|Account|Partition|State|Submit|Start|End|Elapsed|AllocCPUS|ReqCPUS|Timelimit|JobName
10|ann|hep|p|COMPLETED|2026-03-01T08:00:00|2026-03-01T08:10:00|2026-03-01T10:10:00|02:00:00|16|16|1-00:00:00|f
10.batch||hep||COMPLETED|2026-03-01T08:10:00|2026-03-01T08:10:00|2026-03-01T10:10:00|02:00:00|16|16||batch
11_3|bob|hep|p|CANCELLED by 9|2026-03-01T08:05:00|2026-03-01T08:05:00|2026-03-01T08:06:30|90|4|4|UNLIMITED|g
12|bob|hep|batch|PENDING|2026-03-01T08:06:00|Unknown|Unknown|00:00:00|0|8|01:00:00|gen
13|ann|hep|batch|CANCELLED|2026-03-01T08:07:00|None|2026-03-01T08:08:00|00:00:00|0|8|01:00:00|gen
"""
HELIOS = """\
job_id,user,vc,jobname,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1,u1,vcA,train,8,64,1,COMPLETED,2020-04-02 00:00:10,2020-04-02 00:00:20,2020-04-02 00:01:00,40,10
2,u2,vcB,prep,0,4,1,FAILED,2020-04-02 00:00:00,2020-04-02 00:00:20,2020-04-02 00:01:00,40,20
"""
ACME = """\
job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time
d1,a,8,64,8,Pretrain,FAILED,2023-05-17 11:00:58+08:00,2023-05-17 11:01:08+08:00,2023-05-17 11:01:26+08:00,,10,
d2,b,1,1,8,Eval,FAILED,2023-05-17 12:00:58+08:00,2023-05-17 12:00:58+08:00,2023-05-17 12:01:26+08:00,28,0,28
"""
ELASTISIM = {
    "jobs": [
        {"type": "malleable", "submit_time": 5, "num_nodes_min": 2, "num_nodes_max": 8, "walltime": 60,
         "application_model": "models/cfd.json", "attributes": {"user": "ann"}},
        {"type": "rigid", "submit_time": 1, "num_nodes": 4, "walltime": 30},
        "not a job",
    ]
}  # fmt: skip
PLAIN = """\
id;arrival;duration;cores;class;user;weight;max_cores;estimate
a;100;60;4;cfd;ann;2;8;90
b;90;1:00:00;2;fem;bob;;;
"""
RESIZED = """\
JobId=1 UserId=ann(7) Name=A JobState=RESIZING Partition=p TimeLimit=10 StartTime=2026-11-18T08:00:00 \
EndTime=2026-11-18T08:00:10 NodeList=n1 NodeCnt=1 ProcCnt=4 Tres=cpu=4 SubmitTime=2026-11-18T07:59:00
JobId=2 UserId=bob(8) Name=B c=3 JobState=COMPLETED Partition=p TimeLimit=UNLIMITED \
StartTime=2026-11-18T08:00:00 EndTime=2026-11-18T08:00:05 ProcCnt=0 Tres=cpu=6,node=2 \
SubmitTime=2026-11-18T07:59:30
JobId=1 UserId=ann(7) Name=A JobState=COMPLETED Partition=p TimeLimit=10 StartTime=2026-11-18T08:00:10 \
EndTime=2026-11-18T08:00:40 ProcCnt=8 Tres=cpu=8 SubmitTime=2026-11-18T07:59:00
JobId=3 UserId=ann(7) Name=A JobState=RESIZING Partition=p TimeLimit=10 StartTime=2026-11-18T08:00:10 \
EndTime=2026-11-18T08:00:40 ProcCnt=8 Tres=cpu=8 SubmitTime=2026-11-18T07:59:00
no record
"""
PHILLY = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,11cb48
2017-10-09 06:13:03,2951.0,8,2951.0,6214e9
2017-10-08 06:13:03,0.0,1,0,6214e9
"""
POLLUX = """\
name,time,application,num_replicas,batch_size
cifar10-0,53,cifar10,6,2048
bert-1,154,bert,12,48
"""
SAMPLES = {
    "swf": SWF, "sacct": SACCT, "jobcomp": RESIZED, "helios": HELIOS, "acme": ACME, "philly": PHILLY,
    "pollux": POLLUX, "elastisim": json.dumps(ELASTISIM, indent=1), "plain": PLAIN,
}  # fmt: skip
